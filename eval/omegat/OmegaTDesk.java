import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.omegat.core.Core;
import org.omegat.core.data.IProject;
import org.omegat.core.data.PrepareTMXEntry;
import org.omegat.core.data.ProjectProperties;
import org.omegat.core.data.RealProject;
import org.omegat.core.data.SourceTextEntry;
import org.omegat.core.data.TMXEntry;
import org.omegat.core.machinetranslators.ApertiumTranslate;
import org.omegat.core.matching.NearString;
import org.omegat.core.statistics.FindMatches;
import org.omegat.filters2.master.FilterMaster;
import org.omegat.filters2.master.PluginUtils;
import org.omegat.gui.editor.history.WordCompleter;
import org.omegat.gui.editor.history.WordPredictor;
import org.omegat.tokenizer.ITokenizer;
import org.omegat.util.Language;
import org.omegat.util.OConsts;
import org.omegat.util.Preferences;
import org.omegat.util.RuntimePreferences;

/**
 * What OmegaT has for the segments of a document, one after another, each confirmed as its reference is: its fuzzy
 * matches, what its Apertium connector gets from a server, and what its completer and predictor say. No window opens.
 *
 *     java -cp JARS OmegaTDesk.java FOLDER MEMORY.tmx SEGMENTS.json URL
 *
 * FOLDER: a new project; SEGMENTS: [{"src", "tgt"}]; URL: of a server of tmnmt. Prints one JSON object a line.
 */
public class OmegaTDesk {
    static final int LEAST = 3; // letters from which the completer answers
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] given) {
        try {
            tell(given);
            System.exit(0);
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1); // threads of OmegaT go on otherwise
        }
    }

    static void tell(String[] given) throws Exception {
        Path folder = Path.of(given[0]);
        RuntimePreferences.setConfigDir(Files.createTempDirectory("omegat").toString());
        Preferences.init();
        Preferences.setPreference("apertium.server.custom", true);
        Preferences.setPreference("apertium.server.url", given[3] + "/apertium");
        ApertiumTranslate machine = new ApertiumTranslate(); // before there is a window, which it would look for
        machine.setEnabled(true);
        PluginUtils.loadPlugins(new HashMap<>());
        FilterMaster.setFilterClasses(PluginUtils.getFilterClasses());
        Preferences.initFilters();
        Preferences.initSegmentation();
        Core.initializeConsole(new HashMap<>());
        List<Map<String, String>> segments = JSON.readValue(new File(given[2]), List.class);
        IProject project = opened(folder.toAbsolutePath(), Path.of(given[1]), segments);
        WordCompleter completer = new WordCompleter();
        WordPredictor predictor = new WordPredictor();
        ITokenizer tokenizer = project.getTargetTokenizer();
        for (Map<String, String> segment : segments) {
            String source = segment.get("src"), target = segment.get("tgt");
            Map<String, Object> told = new LinkedHashMap<>();
            told.put("matches", matches(project, source));
            told.put("machine", machine.getTranslation(new Language("en"), new Language("fr"), source));
            told.put("completed", completed(completer, target));
            told.put("predicted", predicted(predictor, target));
            System.out.println(JSON.writeValueAsString(told));
            confirm(project, source, target);
            String[] words = tokenizer.tokenizeWordsToStrings(target, ITokenizer.StemmingMode.NONE);
            completer.train(words);
            predictor.train(words);
        }
    }

    static IProject opened(Path folder, Path memory, List<Map<String, String>> segments) throws Exception {
        ProjectProperties about = new ProjectProperties(folder.toFile());
        about.setSourceLanguage("EN");
        about.setTargetLanguage("FR");
        about.setSourceTokenizer(PluginUtils.getTokenizerClassForLanguage(new Language("EN")));
        about.setTargetTokenizer(PluginUtils.getTokenizerClassForLanguage(new Language("FR")));
        about.setSentenceSegmentingEnabled(false);
        for (String one : List.of(about.getSourceRoot(), about.getTMRoot(), about.getGlossaryRoot(),
                about.getDictRoot(), about.getTargetRoot(), about.getProjectInternal())) {
            Files.createDirectories(Path.of(one));
        }
        List<String> sources = new ArrayList<>();
        segments.forEach(one -> sources.add(one.get("src")));
        Files.writeString(Path.of(about.getSourceRoot(), "text.txt"), String.join("\n\n", sources) + "\n");
        Files.copy(memory, Path.of(about.getTMRoot(), "memory.tmx"));
        RealProject project = new RealProject(about);
        Core.setProject(project);
        project.loadProject(false);
        return project;
    }

    static List<Map<String, Object>> matches(IProject project, String source) throws Exception {
        List<Map<String, Object>> all = new ArrayList<>();
        FindMatches search = new FindMatches(project, OConsts.MAX_NEAR_STRINGS, true, false);
        for (NearString one : search.search(source, true, true, () -> false)) {
            Map<String, Object> match = new LinkedHashMap<>();
            match.put("tgt", one.translation);
            match.put("score", one.scores[0].score);
            match.put("from", one.comesFrom.toString());
            all.add(match);
        }
        return all;
    }

    /** What the completer has for each beginning of each word. */
    static Map<String, List<String>> completed(WordCompleter completer, String target) {
        Map<String, List<String>> all = new LinkedHashMap<>();
        for (String word : target.split("[^\\p{L}\\p{M}\\p{N}]+")) {
            for (int end = LEAST; end < word.length(); end++) {
                String begun = word.substring(0, end);
                List<String> found = completer.completeWord(begun);
                if (found.contains(word)) all.put(begun, found);
            }
        }
        return all;
    }

    /** What the predictor has behind each word. */
    static Map<String, List<String>> predicted(WordPredictor predictor, String target) {
        Map<String, List<String>> all = new LinkedHashMap<>();
        for (String word : target.split("[^\\p{L}\\p{M}\\p{N}]+")) {
            List<String> found = new ArrayList<>();
            if (!word.isEmpty()) predictor.predictWord(word).forEach(one -> found.add(one.getWord()));
            if (!found.isEmpty()) all.put(word, found);
        }
        return all;
    }

    static void confirm(IProject project, String source, String target) {
        SourceTextEntry entry = project.getAllEntries().stream().filter(one -> one.getSrcText().equals(source))
                .findFirst().orElseThrow(() -> new IllegalStateException("not a segment of OmegaT: " + source + "; it has " + project.getAllEntries().stream().map(SourceTextEntry::getSrcText).toList()));
        PrepareTMXEntry translated = new PrepareTMXEntry();
        translated.source = source;
        translated.translation = target;
        project.setTranslation(entry, translated, true, (TMXEntry.ExternalLinked) null);
    }
}
